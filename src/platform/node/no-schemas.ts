/**
 * For fastify's `schemaController`: our routes judge by hand what they are asked, and answer with plain
 * objects. Without this fastify loads two compilers of schemas when it is made, a twentieth of the start of a
 * process. A route that has a schema all the same ends the start.
 */
function refuse(): never {
  throw new Error('no route has a schema: see platform/node/no-schemas.ts');
}

export const NO_SCHEMAS = { compilersFactory: { buildValidator: refuse, buildSerializer: refuse } };
