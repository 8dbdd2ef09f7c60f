"""From a weighted mixture of .bin/.idx files to a trained BLOOM: checkpoints and a Hugging Face model."""
