"""mixtures: a corpus and a tokenizer become weighted Megatron `.bin/.idx` files and an exact sample order.

Read `write.py` first: it is the whole step. `indexed` is the file format, `order` and `blend` the published
order of samples, `lock` what freezes them, `dataset` what a training run reads. How groups are weighted is in
`roots_pipeline.core.weights`.
"""
