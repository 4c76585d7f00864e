#!/bin/sh
# The etcd member of host 3 of 3 (configs/three-hosts/README.md), from the folder with tls/:  ./etcd.sh
# Clients, and the members to one another, show certificates of the group's authority.
exec etcd --name etcd-3 --data-dir state/etcd \
  --initial-cluster-token mail --initial-cluster-state new \
  --initial-cluster etcd-1=https://10.1.0.1:2380,etcd-2=https://10.1.0.2:2380,etcd-3=https://10.1.0.3:2380 \
  --listen-peer-urls https://10.1.0.3:2380 --initial-advertise-peer-urls https://10.1.0.3:2380 \
  --listen-client-urls https://10.1.0.3:2379 --advertise-client-urls https://10.1.0.3:2379 \
  --peer-client-cert-auth --peer-trusted-ca-file tls/ca.crt \
  --peer-cert-file tls/etcd-3.crt --peer-key-file tls/etcd-3.key \
  --client-cert-auth --trusted-ca-file tls/ca.crt --cert-file tls/etcd-3.crt --key-file tls/etcd-3.key \
  --auto-compaction-retention 1h
