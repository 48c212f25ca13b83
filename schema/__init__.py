"""The tables once; what differs per database beside them."""
