"""Who may call which method: tokens, users and permissions (operations.md 7, json-rpc.md 1.11).

    POST /login -> Login (Attempts) -> Credentials (bcrypt, off the loop) -> TokenIssuer -> token
    Authorization: Bearer ... -> Authenticator -> Session -> the method table of its permissions

A gate is asked once for each new head of a request, not for each request: it gives a `Session`, whose dispatcher knows
the permitted methods and answers `Unauthorized` for the others. So permissions are decided when a table is made, and a
request with a known token costs no more than a request without any. When the token ends, so does the session: there is
no other place that knows whether a token is good.

permissions  `group:method` entries, and the method table they leave
credentials  the TOML file of users, and the check of a password in constant work
tokens       signing and reading JSON Web Tokens
roll         who is still as he was when his token was made
session      what a token opens, as long as it is good
gate         from an `Authorization` header to a session; also what GraphQL asks
attempts     who has tried to log in how often, and has to wait
login        `POST /login`

Nothing here is imported by a node whose services ask for no token: the libraries behind it take 200 ms to load.
"""
