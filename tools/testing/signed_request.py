"""Sends a signed request using only spec/authentication.md#signed-payload, Python's json and Debian's Ed25519 package.

Reads {"url", "token", "did", "seed_hex", "text", "escaped"} from stdin and writes {"status", "body"} to stdout.
If `escaped` is false, it signs with ensure_ascii=False, as some clients do.
"""
import json
import sys
import time
import urllib.error
import urllib.request
import uuid


def signer(seed):
    try:
        from nacl.signing import SigningKey

        return lambda message: SigningKey(seed).sign(message).signature
    except ImportError:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(seed).sign


def base58(data):
    alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
    number, text = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = alphabet[digit] + text
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + text


def main():
    given = json.load(sys.stdin)
    part = {"kind": "text", "text": given["text"]}
    message = {"role": "user", "kind": "message", "messageId": str(uuid.uuid4()), "parts": [part]}
    call = {"jsonrpc": "2.0", "id": "1", "method": "message/send", "params": {"message": message}}
    body = json.dumps(call, ensure_ascii=False)
    timestamp = int(time.time())
    payload = {"body": body, "did": given["did"], "timestamp": timestamp}
    signed = json.dumps(payload, sort_keys=True, ensure_ascii=given["escaped"])
    headers = {
        "Authorization": "Bearer " + given["token"],
        "Content-Type": "application/json",
        "X-DID": given["did"],
        "X-DID-Timestamp": str(timestamp),
        "X-DID-Signature": base58(signer(bytes.fromhex(given["seed_hex"]))(signed.encode("utf-8"))),
    }
    request = urllib.request.Request(given["url"], data=body.encode("utf-8"), headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            status, said = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, said = error.code, error.read()
    json.dump({"status": status, "body": json.loads(said)}, sys.stdout)


main()
