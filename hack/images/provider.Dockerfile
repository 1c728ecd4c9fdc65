# The scripted model provider of the demo and the tests; the session image has the project's wheel and aiohttp.
ARG SESSION
FROM ${SESSION}
USER 65532:65532
ENTRYPOINT ["python3", "-m", "realcli_provider"]
