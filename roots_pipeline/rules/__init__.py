"""Rules on documents: maps that measure (they need the text) and maps that judge (they need measures only).

`massivetext`  the quality and repetition measures of MassiveText
`pii`          personal information, replaced by tags
`catalogue`    the maps and filters of the catalogue cleaning of ROOTS
`language`     language identification, and its agreement with the declared language
`thresholds`   verdicts from limits on measures, by language
"""
