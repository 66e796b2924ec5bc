import { computed, signal } from '@preact/signals'

/**
 * The signed-in account. Undefined until `GET /console/session` has answered.
 *
 * @type {import('@preact/signals').Signal<import('../types/answers.js').Session | undefined>}
 */
export const session = signal(undefined)

/** Whether the account sees the tasks of all owners. */
export const isOperator = computed(() => session.value?.role === 'operator')

/** Whether texts of other owners are shown. */
export const showsTexts = computed(() => session.value?.shows_texts === true)

/** Leaves for the sign-in page, which returns to the present address. */
export function goToSignIn() {
  const back = location.pathname + location.search
  location.assign(`/console/sign-in?return=${encodeURIComponent(back)}`)
}
