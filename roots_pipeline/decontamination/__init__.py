"""Decontamination: documents that hold items of evaluation sets are dropped, cut or reported.

    evaluations   an evaluation set in a recipe, and a fingerprint of what its files hold
    items         its files become items: JSON lines, Parquet, Hugging Face datasets
    index         items become n-grams that a scan of texts can look for
    evidence      how much of an item a document holds
    stage         the stage `decontaminate`
    review        a page and a table of what was found, for judging it by eye
"""
