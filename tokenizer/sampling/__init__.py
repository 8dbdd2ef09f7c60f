"""Which text a tokenizer learns from: shares for languages and sources, and duplicates that must not count.

    sizes of groups ──rules──▶ ratio of each group ──▶ weights of the count table     (apply: weights)
                                                  └──▶ a sample of documents, counted  (apply: documents)

A group is (language, source). `rules` holds the arithmetic, `mixture` the rule that follows the mixture, `draw` what
happens to the documents of one shard, `first_of_equals` finds duplicates over all shards, `sample` puts it together.
"""
