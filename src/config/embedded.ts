/**
 * What `twinpost up` runs without a file: configs/up.yaml without its comments (a test compares the two).
 * Secrets are made anew for each run and come through the environment.
 */
export const EMBEDDED_NAME = '(built in)';

export const EMBEDDED_UP_YAML = `gateway:
  id: gateway
  host: localhost
  hostname: twinpost.localhost
  smtp:
    listen: [127.0.0.1:2525]
  delivery:
    retry: {first: 1s, max: 30s}
  routes:
    - {domain: '*', via: smtp://127.0.0.1:2526}
  admin: {listen: 127.0.0.1:8025}
stores:
  - id: store-a
    host: localhost
    paths:
      - {name: A, address: 127.0.0.1:7401}
      - {name: B, address: 127.0.0.1:7411}
    admin: {listen: 127.0.0.1:9401}
  - id: store-b
    host: localhost
    paths:
      - {name: A, address: 127.0.0.1:7402}
      - {name: B, address: 127.0.0.1:7412}
    admin: {listen: 127.0.0.1:9402}
sink:
  listen: 127.0.0.1:2526
  admin: 127.0.0.1:9400
`;
