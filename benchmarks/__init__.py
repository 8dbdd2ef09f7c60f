"""Speed beside other tools: both sides in one run, in CPU time, with the ratio printed. `make bench` runs all."""
