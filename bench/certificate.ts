/** A certificate for the address of loopback, where all servers of a bench are, and the authority that it is by. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

import { HOST } from '../test/process/cluster.js';

const NAME = 'twinpost';
const MAKE_CA = join('configs', 'tls', 'make-test-ca.sh');

export interface BenchCertificate {
  readonly files: { readonly cert: string; readonly key: string };
  readonly caFile: string;
}

/** Written into this folder. */
export function makeCertificate(folder: string): BenchCertificate {
  execFileSync(MAKE_CA, [folder, `${NAME}=${HOST}`], { stdio: 'pipe' });
  return { files: { cert: join(folder, `${NAME}.crt`), key: join(folder, `${NAME}.key`) }, caFile: join(folder, 'ca.crt') };
}
