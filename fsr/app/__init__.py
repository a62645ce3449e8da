"""What a caller asks for, made of what is below; the public API of Python is :mod:`fsr.app.api`."""
