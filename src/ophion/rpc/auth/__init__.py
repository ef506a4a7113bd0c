"""Authentication and authorization: tokens, users and permissions (operations.md 7, json-rpc.md 1.11).

    POST /login -> Login (LoginThrottle) -> credentials (bcrypt, off the loop) -> TokenIssuer -> token
    Authorization: Bearer ... -> Authenticator -> Session -> the method table of its permissions

The transport calls the authenticator once for each new request head, not for each request. The authenticator returns a
`Session`. The session's dispatcher runs permitted methods and answers `Unauthorized` to all others. A request with a
known token takes no longer than a request without a token. The session ends with its token. Only the session decides
whether the token is valid.

method_permissions  `group:method` entries, and the method table they permit
credentials         the TOML file of users, and the password check
tokens              signing and reading JSON Web Tokens
revocation          ends tokens of users that were removed or changed
session             what a valid token permits
authenticator       turns an `Authorization` header into a session; GraphQL uses it too
login_throttle      counts failed logins and delays further ones
login               `POST /login`
auth_setup          builds the parts above from the settings

A node whose services need no token imports nothing of this package: the libraries behind it take 200 ms to load.
"""
