/** Names of domains as DNS and routing know them, by Node's own IDNA (UTS 46). */
import { domainToASCII } from 'node:url';
import type { ToAscii } from '../ports.js';

export const toAscii: ToAscii = domainToASCII;
