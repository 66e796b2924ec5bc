"""A client of a2a-sdk 1.x. Arguments: address, token, binding. Reads one call per line of stdin and answers on stdout, as JSON."""

import asyncio
import json
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
)
from google.protobuf.json_format import MessageToDict

base, token, binding = sys.argv[1:4]


def request_of(given):
    message = Message(
        message_id=uuid.uuid4().hex,
        role=Role.ROLE_USER,
        parts=[Part(text=given.get('text', ''))],
        task_id=given.get('id', ''),
        context_id=given.get('contextId', ''),
    )
    return SendMessageRequest(message=message)


async def collect(events):
    return [MessageToDict(event) async for event in events]


async def main():
    headers = {'Authorization': f'Bearer {token}'} if token else {}
    async with httpx.AsyncClient(headers=headers, timeout=60) as http:
        card = await A2ACardResolver(http, base.rstrip('/')).get_agent_card()

        def client(**settings):
            bindings = [{'REST': 'HTTP+JSON'}.get(binding, 'JSONRPC')]
            config = ClientConfig(httpx_client=http, supported_protocol_bindings=bindings, **settings)
            return ClientFactory(config).create(card)

        streaming = client()
        waiting = client(streaming=False)
        polling = client(streaming=False, polling=True)

        async def call(operation, given):
            id, config = given.get('id', ''), given.get('configId', '')
            if operation == 'card':
                return MessageToDict(card)
            if operation == 'send':
                sender = waiting if given.get('waits', True) else polling
                [answer] = await collect(sender.send_message(request_of(given)))
                return answer.get('task', answer)
            if operation == 'stream':
                return await collect(streaming.send_message(request_of(given)))
            if operation == 'subscribe':
                return await collect(streaming.subscribe(SubscribeToTaskRequest(id=id)))
            if operation == 'get':
                answer = await waiting.get_task(GetTaskRequest(id=id))
            elif operation == 'list':
                answer = await waiting.list_tasks(ListTasksRequest(context_id=given['contextId']))
            elif operation == 'cancel':
                answer = await waiting.cancel_task(CancelTaskRequest(id=id))
            elif operation == 'setPush':
                answer = await waiting.create_task_push_notification_config(
                    TaskPushNotificationConfig(task_id=id, id=config, url=given['url'], token=given['token'])
                )
            elif operation == 'getPush':
                answer = await waiting.get_task_push_notification_config(
                    GetTaskPushNotificationConfigRequest(task_id=id, id=config)
                )
            elif operation == 'listPush':
                answer = await waiting.list_task_push_notification_configs(
                    ListTaskPushNotificationConfigsRequest(task_id=id)
                )
                return MessageToDict(answer).get('configs', [])
            else:
                await waiting.delete_task_push_notification_config(
                    DeleteTaskPushNotificationConfigRequest(task_id=id, id=config)
                )
                return None
            return MessageToDict(answer)

        print(json.dumps({'answer': 'ready'}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            request = json.loads(line)
            try:
                result = {'answer': await call(request['operation'], request['given'])}
            except Exception as error:
                result = {'error': {'name': type(error).__name__, 'message': str(error)}}
            print(json.dumps(result), flush=True)


asyncio.run(main())
