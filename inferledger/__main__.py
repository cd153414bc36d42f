"""`python -m inferledger`."""

from inferledger.cli import main

main()
