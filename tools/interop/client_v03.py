"""A client of a2a-sdk 0.3. Arguments: address, token, binding. Reads one call per line of stdin and answers on stdout, as JSON."""

import asyncio
import json
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationConfig,
    Role,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TextPart,
)

base, token, _binding = sys.argv[1:4]


def message_of(given):
    return Message(
        message_id=uuid.uuid4().hex,
        role=Role.user,
        parts=[Part(root=TextPart(text=given.get('text', '')))],
        task_id=given.get('id'),
        context_id=given.get('contextId'),
    )


def plain(model):
    return model.model_dump(mode='json', by_alias=True, exclude_none=True)


async def collect(events):
    """The first event is the task; those after it are updates, with the task so far."""
    found = []
    async for event in events:
        if isinstance(event, tuple):
            task, update = event
            found.append(plain(update or task))
        else:
            found.append(plain(event))
    return found


async def main():
    headers = {'Authorization': f'Bearer {token}'} if token else {}
    async with httpx.AsyncClient(headers=headers, timeout=60) as http:
        card = await A2ACardResolver(http, base.rstrip('/')).get_agent_card()

        def client(**settings):
            return ClientFactory(ClientConfig(httpx_client=http, **settings)).create(card)

        streaming = client()
        waiting = client(streaming=False)
        polling = client(streaming=False, polling=True)

        async def call(operation, given):
            id = given.get('id', '')
            if operation == 'card':
                return plain(card)
            if operation == 'send':
                sender = waiting if given.get('waits', True) else polling
                [answer] = await collect(sender.send_message(message_of(given)))
                return answer
            if operation == 'stream':
                return await collect(streaming.send_message(message_of(given)))
            if operation == 'subscribe':
                return await collect(streaming.resubscribe(TaskIdParams(id=id)))
            if operation == 'get':
                return plain(await waiting.get_task(TaskQueryParams(id=id)))
            if operation == 'cancel':
                return plain(await waiting.cancel_task(TaskIdParams(id=id)))
            if operation == 'setPush':
                config = PushNotificationConfig(id=given['configId'], url=given['url'], token=given['token'])
                return plain(
                    await waiting.set_task_callback(
                        TaskPushNotificationConfig(task_id=id, push_notification_config=config)
                    )
                )
            if operation == 'getPush':
                params = GetTaskPushNotificationConfigParams(
                    id=id, push_notification_config_id=given['configId']
                )
                return plain(await waiting.get_task_callback(params))
            raise NotImplementedError(operation)

        print(json.dumps({'answer': 'ready'}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            request = json.loads(line)
            try:
                result = {'answer': await call(request['operation'], request['given'])}
            except Exception as error:
                result = {'error': {'name': type(error).__name__, 'message': str(error)}}
            print(json.dumps(result), flush=True)


asyncio.run(main())
