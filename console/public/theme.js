// A classic script, because it selects the colours before the first paint.
{
  let theme = null
  try {
    theme = localStorage.getItem('parley.theme')
  } catch {
    // The browser does not allow storage; the colours of the system apply.
  }
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
}
