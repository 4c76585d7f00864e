/**
 * The OpenAPI document of a table of addresses (routes.ts). It is made when the program is built
 * (bin/write-openapi.ts): no process that serves turns shapes into JSON schemas.
 */
import { z } from 'zod';
import { refusalAnswer } from './pages.js';
import type { PlainAnswer, Route } from './route.js';

type Json = Readonly<Record<string, unknown>>;

const PLAIN_TYPES: Readonly<Record<PlainAnswer, string>> = {
  text: 'text/plain', entries: 'application/x-twinpost-entries', document: 'application/json',
  lines: 'application/x-ndjson',
};
const OWN_SUMMARY =
  'Who may ask: a bearer token with the role of x-twinpost-role; probes need none. Beside the refusals named '
  + 'here there are 401, 403, 413 and 415.';

export function openApiDocument(
  title: string, version: string, table: Readonly<Record<string, Route>>,
): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const [name, route] of Object.entries(table)) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(name, route) };
  }
  return {
    openapi: '3.1.0',
    info: { title, version, description: OWN_SUMMARY },
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      responses: { refusal: { description: 'why not', content: jsonOf(schemaOf(refusalAnswer, 'output')) } },
    },
  };
}

function operation(operationId: string, { role, summary, path, query, body, answer }: Route): Json {
  const parameters = [...pathParameters(path), ...(query === undefined ? [] : queryParameters(query))];
  const content =
    typeof answer === 'string' ? { [PLAIN_TYPES[answer]]: {} } : jsonOf(schemaOf(answer, 'output'));
  return {
    operationId, summary, 'x-twinpost-role': role,
    ...(role === 'probe' ? {} : { security: [{ token: [] }] }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {}
      : { requestBody: { required: true, content: jsonOf(schemaOf(body, 'input')) } }),
    responses: {
      200: { description: 'done', content },
      ...(role === 'probe' ? {} : { default: { $ref: '#/components/responses/refusal' } }),
    },
  };
}

function pathParameters(path: string): readonly Json[] {
  return path.split('/').filter((part) => part.startsWith(':')).map((part) =>
    ({ name: part.slice(1), in: 'path', required: true, schema: { type: 'string' } }));
}

function queryParameters(query: z.ZodType): readonly Json[] {
  const { properties = {}, required = [] } = schemaOf(query, 'input') as {
    readonly properties?: Readonly<Record<string, Json>>; readonly required?: readonly string[];
  };
  return Object.entries(properties).map(([name, schema]) =>
    ({ name, in: 'query', required: required.includes(name), schema }));
}

function jsonOf(schema: Json): Json {
  return { 'application/json': { schema } };
}

/** Rules of ours that no schema says are left out. */
function schemaOf(shape: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(shape, {
    io, unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      // In OpenAPI that would be what a client may not send.
      delete jsonSchema.readOnly;
      // Every integer is a safe one.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      // A later release may tell more.
      if (io === 'output') delete jsonSchema.additionalProperties;
    },
  });
  return schema;
}
