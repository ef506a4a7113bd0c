"""Command lines, files and variables of Besu 1.0 to 26.x.

    option_table   every option of Besu and what Ophion does with it: honoured, without effect, refused
    honoured, ignored, refused   the rows of the table, with versions and reasons
    values         values of shared options that Ophion does not have (sync-mode=X_SNAP, the API group ENGINE, ...)
    home           the home directory of a Besu that this program replaces
    path_access    paths that the user of a container lacks permissions for
    profiles       the options that --profile stands for
    log4j          level, format and file of a Log4j 2 configuration
    settings       settings read from flags, file and environment, translated into options of Ophion

The table is loaded only when a setting is not an option of Ophion.
"""
