/** Words of TLS reports: where a domain wants them, and what a failed session is called. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { DnsAnswer } from '../../../../../src/platform/resolver.js';
import { reportUris, tlsResultType } from '../../../../../src/gateway/outbound/pure/tls-results.js';

function found(...records: readonly string[]): DnsAnswer<'TXT'> {
  return { kind: 'found', records, isAuthentic: false };
}

describe('where reports go', () => {
  for (const [what, answer, uris] of [
    ['of the RFC', found('v=TLSRPTv1;rua=mailto:reports@example.com'), ['mailto:reports@example.com']],
    ['two, with spaces', found('v=TLSRPTv1; rua = mailto:a@example.com , https://r.example.com/v1/tlsrpt ;x=y'), ['mailto:a@example.com', 'https://r.example.com/v1/tlsrpt']],
    ['four: the first three', found(`v=TLSRPTv1; rua=${[1, 2, 3, 4].map((each) => `mailto:${String(each)}@example.com`).join(',')}`), ['mailto:1@example.com', 'mailto:2@example.com', 'mailto:3@example.com']],
    ['in other ways', found('v=TLSRPTv1; rua=http://a.example/,ftp://a.example/,mailto:a b@example.com,mailto:x\u0007@example.com'), []],
    ['in two records', found('v=TLSRPTv1; rua=mailto:a@example.com', 'v=TLSRPTv1; rua=mailto:b@example.com'), []],
    ['of another version', found('v=TLSRPTv2; rua=mailto:a@example.com'), []],
    ['not said', found('v=TLSRPTv1;'), []],
    ['not known', { kind: 'failed', why: 'silence' }, []],
  ] as const) {
    test(what, () => { assert.deepEqual(reportUris(answer), uris); });
  }
});

describe('a failed session is called', () => {
  for (const [text, type] of [
    ['mx[192.0.2.1]:25 offers no STARTTLS, and mail must not go there in clear', 'starttls-not-supported'],
    ['mx[192.0.2.1]:25 refused STARTTLS: 454 4.7.0 no', 'starttls-not-supported'],
    ['no connection to mx:25: no answer on TLSA of _25._tcp.mx, a name of a signed zone: SERVFAIL', 'dnssec-invalid'],
    ['no TLS with mx: certificate has expired (CERT_HAS_EXPIRED)', 'certificate-expired'],
    ['a certificate that leads to its TLSA records has expired, or is not valid yet', 'certificate-expired'],
    ['its certificate, by its TLSA records, is not for mx.example', 'certificate-host-mismatch'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'certificate-host-mismatch'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'certificate-not-trusted'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'certificate-not-trusted'],
    ['no TLS with mx: ECONNRESET', 'validation-failure'],
  ] as const) {
    test(`${type}: ${text}`, () => { assert.equal(tlsResultType(text), type); });
  }
});
