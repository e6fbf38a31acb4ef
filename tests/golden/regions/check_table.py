class K:
  def m(self):
    for i in range(3):
      while i:
        x = 1
    y = 2
def f():
    if True:
        for j in range(2):
            pass
    with open("a") as g:
        z = 1
async def h():
    async for k in q():
        pass
    return 3
w = 1
for a in b:
    if a:
        c = 1
