"""An agent of a2a-sdk 0.3 that knows the tasks of the interop suite. Argument: port."""

import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart
from a2a.utils import new_task

url = f'http://127.0.0.1:{sys.argv[1]}'


def text_part(text):
    return Part(root=TextPart(text=text))


class Calculator(AgentExecutor):
    async def execute(self, context, event_queue):
        task = context.current_task
        continued = task is not None
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if 'x^2' in context.get_user_input():
            await updater.requires_input(updater.new_agent_message([text_part('What is x?')]), final=True)
            return
        await updater.start_work()
        answer = 'x^2 + 1 = 26' if continued else '6*7 = 42'
        await updater.add_artifact([text_part(answer)], name='answer')
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


card = AgentCard(
    name='python v03',
    description='Calculates products and polynomials',
    url=f'{url}/',
    version='1.0.0',
    default_input_modes=['text/plain'],
    default_output_modes=['text/plain'],
    capabilities=AgentCapabilities(streaming=True),
    skills=[AgentSkill(id='calculate', name='Calculate', description='Calculates', tags=['numbers'])],
)
handler = DefaultRequestHandler(agent_executor=Calculator(), task_store=InMemoryTaskStore())
app = A2AStarletteApplication(agent_card=card, http_handler=handler).build()
uvicorn.run(app, host='127.0.0.1', port=int(sys.argv[1]), log_level='warning')
