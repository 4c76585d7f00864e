/** The last step of a build: writes the OpenAPI documents of the admin HTTP beside the program. */
import { openApiDocument } from '../admin-api/openapi.js';
import { gatewayRoutes, groupRoutes, probeRoutes, storeRoutes } from '../admin-api/routes.js';
import { writeDocument } from '../platform/node/openapi-files.js';
import { packageVersion } from './package-version.js';

const TABLES = { gateway: { ...gatewayRoutes, ...groupRoutes }, store: storeRoutes } as const;

for (const of of ['gateway', 'store'] as const) {
  const table = { ...probeRoutes, ...TABLES[of] };
  writeDocument(of, openApiDocument(`Twinpost: admin HTTP of a ${of}`, packageVersion(), table));
}
