"""An agent of a2a-sdk 1.x that knows the tasks of the interop suite. Argument: port."""

import asyncio
import sys

import uvicorn
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from starlette.applications import Starlette

url = f'http://127.0.0.1:{sys.argv[1]}'


class Calculator(AgentExecutor):
    async def execute(self, context, event_queue):
        task = context.current_task
        continued = task is not None
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if 'x^2' in context.get_user_input():
            await updater.requires_input(updater.new_agent_message([Part(text='What is x?')]))
            return
        if 'slowly' in context.get_user_input():
            await updater.start_work(updater.new_agent_message([Part(text='Still calculating')]))
            await asyncio.sleep(600)
        await updater.start_work()
        answer = 'x^2 + 1 = 26' if continued else '6*7 = 42'
        await updater.add_artifact([Part(text=answer)], name='answer')
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


card = AgentCard(
    name='python v1',
    description='Calculates products and polynomials',
    version='1.0.0',
    default_input_modes=['text/plain'],
    default_output_modes=['text/plain'],
    capabilities=AgentCapabilities(streaming=True),
    skills=[AgentSkill(id='calculate', name='Calculate', description='Calculates', tags=['numbers'])],
    supported_interfaces=[
        AgentInterface(protocol_binding='JSONRPC', protocol_version='1.0', url=f'{url}/rpc')
    ],
)
handler = DefaultRequestHandler(
    agent_executor=Calculator(), task_store=InMemoryTaskStore(), agent_card=card
)
app = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, '/rpc')])
uvicorn.run(app, host='127.0.0.1', port=int(sys.argv[1]), log_level='warning')
