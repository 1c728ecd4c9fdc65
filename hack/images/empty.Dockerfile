# Nothing to start: no shell, no libc, one file.
FROM scratch
COPY empty.Dockerfile /data/only
