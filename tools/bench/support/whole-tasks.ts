import type { Offer } from '@parley/negotiation/score/offer'
import { skillOf, type Text } from '../../testing/routing-list.ts'

/** Agents with several skills, written before the first measurement. */
const described: [name: string, description: string, skills: [string, string][]][] = [
  [
    'summarizer',
    'Sums up long texts in a few sentences',
    [
      ['Summarize text', 'Picks the sentences of an article or report that say most'],
      ['Key points', 'Lists what was decided in minutes of a meeting'],
    ],
  ],
  [
    'calculator',
    'Calculates exactly what is asked',
    [
      ['Arithmetic', 'Percentages, powers, roots, fractions'],
      ['Convert units', 'Miles to kilometres, pounds to kilograms'],
      ['Matrices', 'Determinants, inverses and equations'],
    ],
  ],
  [
    'data-analyst',
    'Reads a table and says what stands out',
    [
      ['Analyse table', 'Statistics of CSV columns, trends, correlations, outliers'],
      ['Chart', 'Draws bars, lines and histograms of the data'],
    ],
  ],
  [
    'document-maker',
    'Makes well-set PDF documents',
    [
      ['Make PDF', 'Turns Markdown or plain text into a PDF file with headings and page numbers'],
      ['Report', 'Sets the results of other tasks as a report'],
    ],
  ],
  [
    'travel_planner',
    'Plans journeys',
    [
      ['Find flights', 'Compares connections and fares'],
      ['Book hotel', 'Rooms by price and place'],
      ['Itinerary', 'What to see, day by day'],
    ],
  ],
  [
    'codereviewer',
    'Reads source code',
    [
      ['Review pull request', 'Finds bugs and missing tests in a diff'],
      ['Explain code', 'Says what a function does'],
      ['Refactor', 'Proposes simpler structure'],
    ],
  ],
  [
    'contractLawyer',
    'Legal help for small firms',
    [
      ['Check contract', 'Finds risky clauses in agreements'],
      ['Draft terms', 'Writes terms of service and privacy policies'],
    ],
  ],
  [
    'kitchen',
    'Everything about cooking',
    [
      ['Recipes', 'Dishes from the ingredients at hand'],
      ['Meal plan', 'A week of meals for a diet'],
      ['Shopping list', 'Adds up what to buy'],
    ],
  ],
  [
    'translator',
    'Translates between sixty languages',
    [
      ['Translate document', 'Keeps layout and tone'],
      ['Subtitle', 'Translates captions of films'],
    ],
  ],
  [
    'fitnesscoach',
    'Training and health',
    [
      ['Workout plan', 'Exercises for strength and endurance'],
      ['Track runs', 'Pace, distance and heart rate'],
    ],
  ],
  [
    'sysadmin',
    'Looks after servers',
    [
      ['Diagnose outage', 'Reads logs and finds why a service is down'],
      ['Disk space', 'Says what fills the disks'],
      ['Certificates', 'Renews TLS certificates'],
    ],
  ],
  [
    'gardener',
    'Plants indoors and out',
    [
      ['Identify plant', 'Names a plant from its description'],
      ['Plant care', 'Watering, light and pests'],
    ],
  ],
  [
    'bookkeeper',
    'Accounts of small firms',
    [
      ['Invoices', 'Writes and files invoices'],
      ['Tax return', 'Prepares VAT and income tax'],
      ['Expenses', 'Sorts receipts'],
    ],
  ],
  [
    'recruiter',
    'Hiring',
    [
      ['Screen resumes', 'Compares applicants with a job description'],
      ['Interview questions', 'Proposes what to ask candidates'],
    ],
  ],
  [
    'weatherstation',
    'Weather everywhere',
    [
      ['Forecast', 'Rain, wind and temperature of the next ten days'],
      ['Climate history', 'Averages of past years'],
    ],
  ],
  [
    'mailclerk',
    'Handles email',
    [
      ['Draft reply', 'Answers messages politely'],
      ['Sort inbox', 'Labels mail and finds what is urgent'],
    ],
  ],
]

export const specialists: Offer[] = described.map(([name, description, skills]) => ({
  name,
  description,
  skills: skills.map(([skill, text]) => skillOf(skill, text)),
  queueDepth: 0,
}))

const asked: Record<string, string[]> = {
  summarizer: [
    'Here is a forty page article about the history of canals. I have no time to read all of it; give me the essence in five sentences.',
    'We met for two hours yesterday. Attached are the minutes; what did we decide?',
  ],
  calculator: [
    'A shirt costs 80 euros and is reduced by 15 %. After that 19 % of tax is added. What do I pay in the end?',
    'The race was 13.1 miles long; how many kilometres is that?',
  ],
  'data-analyst': [
    'Attached is a CSV of sales by region and month. Which regions grew, are there outliers, and does the price correlate with the volume?',
    'Please plot the ages of our customers as a histogram.',
  ],
  'document-maker': [
    'Take the Markdown below with its tables and headings and give me a PDF that I can print and hand to the board.',
  ],
  travel_planner: [
    'My wife and I want to fly from Vienna to Lisbon in May, stay four nights somewhere quiet near the centre, and see the best of the city.',
    'Find me the cheapest connection to Oslo on Friday.',
  ],
  codereviewer: [
    'I changed the retry loop of our HTTP client. Look at the diff, tell me whether there is a race and which tests are missing.',
    'What does this recursive function do, and could it be written more simply?',
  ],
  contractLawyer: [
    'Our new landlord sent a lease of twelve pages. Are there clauses that could hurt us, for example on termination?',
    'I run a web shop and need a privacy policy.',
  ],
  kitchen: [
    'I have eggs, spinach and some old bread. What can I make for dinner tonight?',
    'Plan vegetarian meals for a family of four for a week and tell me what to buy.',
  ],
  translator: [
    'Please put this letter into Spanish and keep it formal.',
    'The captions of our film are in English, we need them in Japanese.',
  ],
  fitnesscoach: [
    'I want to run a half marathon in October and train three times a week; what exercises should I do?',
  ],
  sysadmin: [
    'Since this morning our shop answers with 502. The logs of the proxy are attached; why is it down?',
    'The server says there is no space left on device; what takes it up?',
  ],
  gardener: [
    'The leaves of my ficus turn yellow and there are small flies in the soil. How often should I water it?',
  ],
  bookkeeper: [
    'I am a freelancer with three receipts and two unpaid bills; write the invoice for March and put my expenses in order.',
    'Prepare the VAT for the last quarter.',
  ],
  recruiter: [
    'We got sixty resumes for the post of an accountant. Which five applicants should we invite, and what should we ask them?',
  ],
  weatherstation: ['We want to have a picnic on Saturday: will it rain in Graz and how warm will it be?'],
  mailclerk: [
    'Answer this complaint of a customer politely and say that the parcel is on its way.',
    'There are 300 unread messages in my inbox; which are urgent?',
  ],
}

export const wholeTasks: Text[] = Object.entries(asked).flatMap(([agent, queries]) =>
  queries.map((query) => ({ query, agent })),
)
