/* Code snippets of a call in other languages. */

const python = (value) => {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${python(one)}`).join(", ")}}`;
  return JSON.stringify(value);
};

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export function curl(url, method, params, hasToken) {
  const token = hasToken ? ` -H "Authorization: Bearer $TOKEN"` : "";
  return `curl -s -H 'Content-Type: application/json'${token} ${url} \\\n  -d ${quoted(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }))}`;
}

export function web3py(url, method, params, hasToken) {
  const options = hasToken ? `, request_kwargs={"headers": {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}}` : "";
  return `from web3 import Web3\n\nw3 = Web3(Web3.HTTPProvider(${JSON.stringify(url)}${options}))\nprint(w3.provider.make_request(${JSON.stringify(method)}, ${python(params)})["result"])`;
}

export function ethers(url, method, params, hasToken) {
  const request = hasToken ? `const request = new ethers.FetchRequest(${JSON.stringify(url)});\nrequest.setHeader("Authorization", \`Bearer \${token}\`);\n` : "";
  return `import { ethers } from "ethers";\n\n${request}const provider = new ethers.JsonRpcProvider(${hasToken ? "request" : JSON.stringify(url)});\nconsole.log(await provider.send(${JSON.stringify(method)}, ${JSON.stringify(params)}));`;
}
