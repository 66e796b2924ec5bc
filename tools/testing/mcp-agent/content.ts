/** A PNG of one pixel. */
export const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

/** A WAV file without samples. */
export const clip = Buffer.from('UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=', 'base64')

/** A question with one text field. */
export const nameForm = (message: string) => ({
  message,
  schema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
})

export const userForm = {
  message: 'Your name and address?',
  schema: {
    type: 'object',
    properties: {
      username: { type: 'string', description: "User's response" },
      email: { type: 'string', description: "User's email address" },
    },
    required: ['username', 'email'],
  },
}

/** Fields of each primitive type with their defaults. */
export const profileForm = {
  message: 'Your profile?',
  schema: {
    type: 'object',
    properties: {
      name: { type: 'string', default: 'John Doe' },
      age: { type: 'integer', default: 30 },
      score: { type: 'number', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', default: true },
    },
  },
}

const options = ['option1', 'option2', 'option3']
const titled = ['First', 'Second', 'Third'].map((title, at) => ({ const: `value${at + 1}`, title }))

/** Fields of each kind of choice. */
export const choicesForm = {
  message: 'Your choices?',
  schema: {
    type: 'object',
    properties: {
      untitledSingle: { type: 'string', enum: options },
      titledSingle: { type: 'string', oneOf: titled },
      legacyEnum: {
        type: 'string',
        enum: ['opt1', 'opt2', 'opt3'],
        enumNames: ['Option One', 'Option Two', 'Option Three'],
      },
      untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
      titledMulti: { type: 'array', items: { anyOf: titled } },
    },
  },
}
