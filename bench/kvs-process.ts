/** The kvs client as a process of its own: options as JSON in the first argument, the result as JSON on stdout. */
import { runKvsClient, type KvsClientOptions } from './kvs-client.js';

const options = JSON.parse(process.argv[2] ?? '{}') as Omit<KvsClientOptions, 'secret'> & { readonly secret: string };
const result = await runKvsClient({ ...options, secret: Buffer.from(options.secret, 'utf8') });
process.stdout.write(`${JSON.stringify(result)}\n`);
