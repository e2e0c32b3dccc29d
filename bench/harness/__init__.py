"""What the benchmark scripts share: servers as processes, the wire, and tables of results."""
