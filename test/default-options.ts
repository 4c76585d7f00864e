/** What the parts of a gateway get from a file that says only what it must: for tests of each part alone. */
import assert from 'node:assert/strict';
import { gatewayOptions } from '../src/bin/gateway-process.js';
import { parseConfig } from '../src/config/load.js';
import { LINK_MARGINS } from '../src/gateway/mirror/link/link-options.js';

const LEAST = `gateway:
  id: gw-1
  host: box-1
  secret: sixteen-characters-and-more
  state_dir: state
  routes: [{domain: '*', via: 'smtp://127.0.0.1:26'}]
  stores:
    - {id: s1, host: box-2, paths: [{name: A, address: '127.0.0.1:7401'}]}
    - {id: s2, host: box-3, paths: [{name: A, address: '127.0.0.1:7402'}]}
`;

const parsed = parseConfig(LEAST, 'least.yaml', { role: 'gateway' });
assert.ok(parsed.ok && parsed.config.gateway !== undefined, 'the least file is whole');
const { inbound: [inbound], outbound, retry, mirror, frameBytesMax } = gatewayOptions(parsed.config.gateway);
assert.ok(inbound !== undefined, 'one listener by default');

export const INBOUND_DEFAULTS = inbound;
export const OUTBOUND_DEFAULTS = outbound;
export const RETRY_DEFAULTS = retry;
export const LINK_DEFAULTS = { ...LINK_MARGINS, ...mirror, frameBytesMax };
