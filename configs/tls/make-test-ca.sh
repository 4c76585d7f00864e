#!/bin/sh
# A CA of one's own for the links between gateways and stores, and a certificate with its key for each of them:
#
#   configs/tls/make-test-ca.sh FOLDER NAME…        e.g.  make-test-ca.sh tls store-1 store-2 gw-1 gw-2
#
# NAME is the id of a gateway or a store as its file says it: the name in the certificate is what is compared,
# addresses are not. A gateway with workers has one certificate for all: NAME=ALIAS,ALIAS names them, for example
# gw-1=gw-1-1,gw-1-2. An etcd is known by its address: etcd-1=10.1.0.1. Makes FOLDER/ca.crt, ca.key and
# NAME.crt, NAME.key. Run again with more names, it keeps the CA that is there, and makes the named
# certificates anew. DAYS=… sets how long they are good for (default 825).
#
# For trying out and for small installations. Keep ca.key away from machines that serve; whoever has it can make
# a certificate for any name. Hand each machine ca.crt and its own NAME.crt and NAME.key.
set -eu

if [ $# -lt 2 ]; then
  echo "usage: $0 FOLDER NAME…" >&2
  exit 2
fi
folder=$1
shift
days=${DAYS:-825}
umask 077
mkdir -p "$folder"

if [ ! -f "$folder/ca.key" ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -sha256 -days 3650 \
    -subj '/CN=Twinpost links' -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign,cRLSign' \
    -keyout "$folder/ca.key" -out "$folder/ca.crt" 2>/dev/null
fi

for named in "$@"; do
  name=${named%%=*}
  names=DNS:$name
  case $named in
    *=*)
      for alias in $(echo "${named#*=}" | tr , ' '); do
        case $alias in
          *:* | *[0-9].[0-9]*.[0-9]*.[0-9]*) names=$names,IP:$alias ;;
          *) names=$names,DNS:$alias ;;
        esac
      done
      ;;
  esac
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -sha256 -subj "/CN=$name" \
    -keyout "$folder/$name.key" -out "$folder/$name.csr" 2>/dev/null
  printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\nkeyUsage=critical,digitalSignature\nbasicConstraints=critical,CA:FALSE\n' "$names" > "$folder/$name.ext"
  openssl x509 -req -sha256 -days "$days" -in "$folder/$name.csr" -CA "$folder/ca.crt" -CAkey "$folder/ca.key" \
    -CAcreateserial -extfile "$folder/$name.ext" -out "$folder/$name.crt" 2>/dev/null
  rm "$folder/$name.csr" "$folder/$name.ext"
done
echo "$folder: ca.crt, and for each of $*: NAME.crt, NAME.key"
