"""Verifies cards with a2a-sdk 1.x or 0.3. Reads a list of cards from stdin, each with its address, its path, an algorithm and the keys
(JWKs by kid), and prints a list of errors; null for a card that verifies."""

import asyncio
import json
import sys

import httpx
from a2a.client import A2ACardResolver
from a2a.utils.signing import create_signature_verifier
from jwt import PyJWK
from jwt.exceptions import PyJWTError


async def error_of(http, card):
    def key_of(kid, jku):
        if jku is not None or kid not in card['keys']:
            raise PyJWTError(f'there is no key {kid}')
        return PyJWK(card['keys'][kid])

    verify = create_signature_verifier(key_of, [card['alg']])
    try:
        await A2ACardResolver(http, card['base'], card['path']).get_agent_card(signature_verifier=verify)
    except Exception as error:
        return f'{type(error).__name__}: {error}'


async def main():
    async with httpx.AsyncClient(timeout=60) as http:
        print(json.dumps([await error_of(http, card) for card in json.load(sys.stdin)]))


asyncio.run(main())
