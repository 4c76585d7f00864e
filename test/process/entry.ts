/** The program that tests and benches start: what the build made for its users. */
import { fileURLToPath } from 'node:url';

export const ENTRY = fileURLToPath(new URL('../../bundle/twinpost.js', import.meta.url));
