"""Tests of roots_pipeline.sources."""
