"""From the shards of ranks that train to those of ranks that generate: three ways, in one run."""
