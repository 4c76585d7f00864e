/** The OpenAPI documents that stand beside the program since it was built (bin/write-openapi.ts). */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import type { Route } from '../../admin-api/route.js';
import { refuse } from './admin-guard.js';
import { serve } from './admin-server.js';
import { makeFolder } from './make-folder.js';
import { PROJECT_FOLDER } from './project-folder.js';

type Documented = 'gateway' | 'store';

const FOLDER = new URL('dist/openapi/', PROJECT_FOLDER);

export function writeDocument(of: Documented, document: object): void {
  makeFolder(fileURLToPath(FOLDER), 0o755);
  writeFileSync(fileOf(of), `${JSON.stringify(document, undefined, 1)}\n`);
}

/** Read when it is asked for: few do, and never often. */
export function serveDocument(app: FastifyInstance, route: Route, of: Documented): void {
  serve(app, route, (_request, reply) => {
    let text: string;
    try {
      text = readFileSync(fileOf(of), 'utf8');
    } catch {
      return refuse(reply, 404, 'this program was built without its OpenAPI documents (npm run build)');
    }
    return reply.type('application/json').send(text);
  });
}

function fileOf(of: Documented): URL {
  return new URL(`${of}.json`, FOLDER);
}
