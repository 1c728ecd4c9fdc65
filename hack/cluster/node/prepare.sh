#!/bin/bash
# Runs once inside the node image while it is built: what kind's base image does, for a Debian root file system.
set -euo pipefail
kubernetes=$1 pause=$2
units=/lib/systemd/system

chmod 755 /usr/local/bin/* /kind /kind/bin /kind/bin/*
# A node starts kubelet and containerd, nothing that Debian would start on a machine.
rm -f "$units"/sysinit.target.wants/systemd-tmpfiles-setup.service "$units"/multi-user.target.wants/* \
  /etc/systemd/system/*.wants/* "$units"/local-fs.target.wants/* "$units"/sockets.target.wants/*udev* \
  "$units"/sockets.target.wants/*initctl* "$units"/basic.target.wants/*
echo ReadKMsg=no >>/etc/systemd/journald.conf
systemctl enable kubelet containerd undo-mount-hacks
systemctl mask systemd-binfmt

mkdir -p /etc/kubernetes/manifests /opt/cni /kind/manifests
ln -s /usr/lib/cni /opt/cni/bin
ctr oci spec |
  jq '.hooks.createContainer=[{"path":"/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' \
    >/etc/containerd/cri-base.json
# Without CAP_SYS_RESOURCE a child may not get a lower oom_score_adj than its parent.
sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' /etc/containerd/config.toml
# The pause image of this Kubernetes, whatever version kind's own file names.
sed -i "s#/pause:[0-9.]*\"#/pause:$pause\"#" /etc/containerd/config.toml
echo "v$kubernetes" >/kind/version
# kind refuses an empty file here; the in-tree host-path provisioner needs no image.
cat >/kind/manifests/default-storage.yaml <<'YAML'
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: kubernetes.io/host-path
YAML
