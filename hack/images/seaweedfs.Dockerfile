# SeaweedFS from its Go module: one static binary, run as a non-root user.
FROM scratch
COPY weed /usr/bin/weed
USER 65532:65532
ENTRYPOINT ["/usr/bin/weed"]
