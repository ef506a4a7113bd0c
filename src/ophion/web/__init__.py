"""The web interface: overview, explorer, consensus, playground and GraphQL editor. The GraphQL port serves the editor
too.

Plain web standards without a build step: the browser gets the files in `files/` as they are.

    service          the files by path, with their headers, for the gateway and GraphQL
    files/main.js    router from an address to a view; files/lib has shared code, files/views one file per view
    files/editor     the GraphQL editor: documents, completion, errors, schema
"""
