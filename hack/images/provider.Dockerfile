# The scripted model provider of the demo and the tests; it needs aiohttp, which the session image has.
ARG SESSION
FROM ${SESSION}
COPY provider /app/provider/provider
ENV PYTHONPATH=/app/provider:/app/realcli:/app/deps
USER 65532:65532
ENTRYPOINT ["python3", "-m", "provider"]
