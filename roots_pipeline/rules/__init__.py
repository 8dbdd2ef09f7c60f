"""Rules on documents: maps that measure (they need the text) and maps that judge (they need measures only).

`massivetext`  the quality and repetition measures of MassiveText
`language`     language identification, and its agreement with the declared language
`thresholds`   verdicts from limits on measures, by language
"""
