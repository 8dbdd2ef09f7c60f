"""The explorer: a local web page on which people move the limits of a finished corpus and see what that would change.

    python -m roots_pipeline explore --run RUN

`table`    the measures of a corpus as columns in memory, and where each document's text lies
`judging`  the verdicts that changed limits would give, by the very stage that a run uses
`pasted`   every measure and verdict of a text that somebody pastes
`export`   the changes as a recipe; running it computes verdicts anew, nothing else
`server`   the page and its JSON, on the loopback interface only

ROOTS had speakers of each language choose its limits on such a page (Laurençon et al. 2022, section 3.1).
"""
