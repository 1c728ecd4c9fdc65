"""python -m realcli_cli: the same as `realcli`."""

from realcli_cli.main import main

if __name__ == "__main__":
    main()
