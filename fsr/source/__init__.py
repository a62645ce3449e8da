"""Kernel text: parse, loop-nest form, emit, cut and splice."""
