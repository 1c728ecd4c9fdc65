# Python with the pinned packages of one extra (deps/, prepared by hack/images.py from constraints.txt, with hashes):
# what the images of the operator, the session and the judge stand on.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
RUN command -v python3 >/dev/null || { apt-get update && apt-get install -y --no-install-recommends python3 ca-certificates && rm -rf /var/lib/apt/lists/*; }
RUN command -v python >/dev/null || ln -s "$(command -v python3)" /usr/local/bin/python
COPY deps /app/deps
RUN python3 -m compileall -q -j 0 /app/deps
# The numeric users of these images have no entry in /etc/passwd; what asks for a name or a home finds it here.
ENV USER=realcli HOME=/tmp
ENV PYTHONPATH=/app/realcli:/app/deps PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
