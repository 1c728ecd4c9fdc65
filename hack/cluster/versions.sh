# shellcheck shell=bash disable=SC2034
# What the cluster and the tools beside it are made from. Changing a line rebuilds exactly what depends on it.
KUBERNETES=1.34.4
KIND=v0.33.0
ETCD=v3.6.5
COREDNS=v1.12.1
PAUSE=3.10.1
RUNC=v1.4.3
CONTAINERD=v2.3.4
KUBE_ROUTER=v2.1.0
HELM=v3.22.0
KWOK=v0.8.0
# SeaweedFS 4.53; its tags are not semantic versions of a Go module
SEAWEEDFS=v0.0.0-20261109003541-7506e5f91cd6
# Debian release of the root file systems: its systemd still supports cgroup v1
DEBIAN=bookworm
# The node image of the kind project, used where a container registry answers
OFFICIAL_NODE=kindest/node:v1.34.3
# Names that kubeadm asks for; with a source-built node nothing is ever pulled from there
REGISTRY=registry.k8s.io
