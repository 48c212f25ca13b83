"""Embedded services: real servers as child processes on free ports of 127.0.0.1."""
