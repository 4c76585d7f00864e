"""Verifies every DKIM signature of every message of a folder with dkimpy; no DNS is asked.

verify.py RECORDS FOLDER    RECORDS: a JSON file, from "SELECTOR._domainkey.DOMAIN" to the text of its TXT record.
                            Prints a JSON object: by file name, for each signature from top to bottom, its tags a=, d=
                            and s=, and whether it is good or why not.
verify.py sign KEY FILE     Prints the file with a signature of d=other.example, s=o1 in front, made by dkimpy.
verify.py sign-all KEY FOLDER   Puts one in front of every message of a folder, in all canonicalizations in turn.
"""
import json
import os
import re
import sys

import dkim


def verified(message, records):
    def txt(name, timeout=5):
        return records.get(name.decode('ascii').rstrip('.'), '').encode('ascii')

    results = []
    header = re.split(rb'\r\n\r\n', message, maxsplit=1)[0]
    signatures = [field for field in re.split(rb'\r\n(?![ \t])', header) if field.lower().startswith(b'dkim-signature:')]
    for index, field in enumerate(signatures):
        tags = dict(re.findall(r'[;\s]([ads])=([^;\s]+)', field.decode('latin-1')))
        try:
            is_good = dkim.DKIM(message).verify(idx=index, dnsfunc=txt)
            why = 'good' if is_good else 'bad'
        except Exception as error:
            why = repr(error)
        results.append([tags.get('a'), tags.get('d'), tags.get('s'), why])
    return results


def sign_all(key, folder):
    kinds = [(header, body) for header in (b'relaxed', b'simple') for body in (b'relaxed', b'simple')]
    for index, name in enumerate(sorted(os.listdir(folder))):
        path = os.path.join(folder, name)
        with open(path, 'rb') as file:
            message = file.read()
        signature = dkim.sign(message, b'o1', b'other.example', key, canonicalize=kinds[index % len(kinds)])
        with open(path, 'wb') as file:
            file.write(signature + message)


def main():
    if sys.argv[1].startswith('sign'):
        with open(sys.argv[2], 'rb') as file:
            key = file.read()
        if sys.argv[1] == 'sign-all':
            sign_all(key, sys.argv[3])
            return
        with open(sys.argv[3], 'rb') as file:
            message = file.read()
        signature = dkim.sign(message, b'o1', b'other.example', key, canonicalize=(b'relaxed', b'simple'))
        sys.stdout.buffer.write(signature + message)
        return
    with open(sys.argv[1], encoding='ascii') as file:
        records = json.load(file)
    folder = sys.argv[2]
    results = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), 'rb') as file:
            results[name] = verified(file.read(), records)
    print(json.dumps(results))


main()
