"""The page for people: overview, explorer, consensus, playground, and the GraphQL editor (also of the GraphQL port).

Plain web standards and no build step: what lies in `files/` is what the browser gets.

    service          the files by path, with their headers, for the gateway and GraphQL
    files/main.js    from an address to a view; files/lib holds what views share, files/views one file a view
    files/editor     the GraphQL editor: documents, completion, mistakes, schema
"""
