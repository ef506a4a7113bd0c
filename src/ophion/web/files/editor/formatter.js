/* Reformat a document without changing its meaning. */

export function formatDocument(text) {
  const tokens = text.match(/"""[^]*?"""|"(?:[^"\\\n]|\\.)*"|#[^\n]*|\.\.\.|[{}()[\]:,!=|@&$]|[^\s{}()[\]:,!=|@&$"#]+/g) || [];
  let out = "", depth = 0, inner = 0, fresh = true;
  const line = () => { out = out.trimEnd() + "\n" + "  ".repeat(depth); fresh = true; };
  for (let at = 0; at < tokens.length; at++) {
    const one = tokens[at], before = tokens[at - 1];
    if (inner) {
      if (/^[)\]}]$/.test(one)) inner--;
      else if (/^[([{]$/.test(one)) { inner++; if (one === "{" && before === ":") out += " "; }
      else if (one === ",") { out += ", "; continue; }
      else if (/^[\w$"-]/.test(one) && before && /[\w"\])}!]$/.test(before) && !/[ ([]$/.test(out)) out += ", ";
      out += one + (one === ":" ? " " : "");
      fresh = false;
    } else if (one === "{") { depth++; out = out.trimEnd() + (out ? " {" : "{"); line(); }
    else if (one === "}") { depth = Math.max(0, depth - 1); line(); out += "}"; depth ? line() : (out += "\n"); }
    else if (one === "(") { inner++; out = out.trimEnd() + "("; fresh = false; }
    else if (one.startsWith("#")) { out += one; line(); }
    else if (one === ":") { out = out.trimEnd() + ": "; fresh = true; }
    else if (one === ",") continue;
    else {
      const joins = fresh || before === "..." || before === "@" || one === ")" || !depth || one === "@" || before === "on" || one === "on";
      if (!joins) line();
      else if (!fresh && before !== "..." && before !== "@") out += " ";
      out += one;
      fresh = false;
    }
  }
  return out.replace(/\n\s*\n/g, "\n").trim() + "\n";
}
